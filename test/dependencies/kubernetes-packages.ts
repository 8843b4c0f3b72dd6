// What the test cluster's node needs of the distribution: the runtime of containers and the
// kernel's tools. Any version from Debian 12 on will do. Installs only as root.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { installPackages } from './apt.ts'

/** Packages, each with a file that shows that it is there. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  containerd: ['containerd', 'ctr', 'containerd-shim-runc-v2'],
  runc: ['runc'],
  'containernetworking-plugins': ['/usr/lib/cni/bridge', '/usr/lib/cni/portmap'],
  iptables: ['iptables', 'iptables-restore'],
  openssl: ['openssl'],
  iproute2: ['ip'],
  'util-linux': ['unshare', 'nsenter', 'setpriv'],
}

/** Installs those that are missing. Throws the reason where that fails. */
export async function findNodePackages(): Promise<void> {
  const path = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`
  const isThere = async (file: string) => {
    const places = file.startsWith('/') ? [file] : path.split(':').map((one) => join(one, file))
    const found = await Promise.all(
      places.map((place) =>
        access(place).then(
          () => true,
          () => false,
        ),
      ),
    )
    return found.includes(true)
  }
  const missing: string[] = []
  for (const [name, files] of Object.entries(NEEDED)) {
    const found = await Promise.all(files.map(isThere))
    if (found.includes(false)) missing.push(name)
  }
  if (missing.length === 0) return
  await installPackages(`the test cluster needs ${missing.join(', ')}`, missing)
}
