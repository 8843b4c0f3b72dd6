// usage: write-app.ts FOLDER BASE
// Fills FOLDER with what stands at /app of the image, whose root without it is BASE. For the
// Dockerfile; build.ts does the same and more.
import { mkdir } from 'node:fs/promises'
import { writeApp } from './app.ts'

const [folder, base] = process.argv.slice(2)
if (folder === undefined || base === undefined) {
  process.stderr.write('usage: write-app.ts FOLDER BASE\n')
  process.exit(2)
}
await mkdir(folder, { recursive: true })
await writeApp(folder, base)
