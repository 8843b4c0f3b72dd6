// The packages that the node of the test cluster needs: the container runtime and network tools.
// Any version since Debian 12 works. Installs them only as root.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { installPackages } from './apt.ts'

/** The packages, with files that exist if a package is installed. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  containerd: ['containerd', 'ctr', 'containerd-shim-runc-v2'],
  runc: ['runc'],
  'containernetworking-plugins': ['/usr/lib/cni/bridge', '/usr/lib/cni/portmap'],
  iptables: ['iptables', 'iptables-restore'],
  openssl: ['openssl'],
  iproute2: ['ip'],
  'util-linux': ['unshare', 'nsenter', 'setpriv'],
}

/** Installs the missing packages. Throws the reason if that fails. */
export async function findNodePackages(): Promise<void> {
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`
  const exists = async (file: string) => {
    const paths = file.startsWith('/') ? [file] : path.split(':').map((one) => join(one, file))
    const found = await Promise.all(
      paths.map((candidate) =>
        access(candidate).then(
          () => true,
          () => false,
        ),
      ),
    )
    return found.includes(true)
  }
  const missing: string[] = []
  for (const [name, files] of Object.entries(PACKAGES)) {
    const found = await Promise.all(files.map(exists))
    if (found.includes(false)) missing.push(name)
  }
  if (missing.length === 0) return
  await installPackages(`the test cluster needs ${missing.join(', ')}`, missing)
}
