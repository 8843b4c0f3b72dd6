// usage: write-app.ts FOLDER BASE
// Writes the image's /app to FOLDER; BASE is the root of the image without /app. For the
// Dockerfile.
import { mkdir } from 'node:fs/promises'
import { writeApp } from './app.ts'

const [folder, base] = process.argv.slice(2)
if (folder === undefined || base === undefined) {
  process.stderr.write('usage: write-app.ts FOLDER BASE\n')
  process.exit(2)
}
await mkdir(folder, { recursive: true })
await writeApp(folder, { folder: base })
