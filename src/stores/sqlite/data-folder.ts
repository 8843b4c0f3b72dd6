// DATA_DIR: the setting, and whether the folder can be used.
import { existsSync, mkdtempSync, rmdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ConfigError, fileSettings } from '../../config/config.ts'
import { stringSetting } from '../../config/settings.ts'
import { codeOf } from '../../process/file-errors.ts'

/** DATA_DIR. */
export const dataDirSetting = stringSetting(
  'folder of the database, used by only one process',
  './data',
)

/** The check of the folder. */
export const dataFolder = fileSettings({ DATA_DIR: dataDirSetting }, ({ DATA_DIR: path }) => {
  checkDataFolder(path)
})

/** Errors of a wrong path or missing permissions; others, such as a full disk, may be temporary. */
const pathErrors: readonly (string | undefined)[] = [
  ...['ENOENT', 'ENOTDIR', 'EEXIST', 'EACCES', 'EPERM', 'EROFS', 'ENAMETOOLONG', 'ELOOP'],
]

/**
 * Throws ConfigError if nothing can be created in the folder, or, if it does not exist, in the
 * nearest of its parents that exists.
 */
export function checkDataFolder(dataDir: string): void {
  let folder = resolve(dataDir)
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  try {
    rmdirSync(mkdtempSync(join(folder, '.curtail-')))
  } catch (error) {
    const code = codeOf(error)
    if (!pathErrors.includes(code)) return // the start reports it
    throw new ConfigError([
      `DATA_DIR ${dataDir} cannot be used: ${code}; it must be a folder that the process can ` +
        'create, or in which it can create files',
    ])
  }
}
