// The platforms that archives are made for, by npm's names of operating systems and processors.

export interface Platform {
  /** As in the name of the archive. */
  name: string
  os: string
  cpu: string
  /** Debian's name of the architecture, if a .deb is made. */
  debian?: string
}

// Node for macOS comes from npm for Intel only; on Apple silicon that archive runs under Rosetta.
export const PLATFORMS: readonly Platform[] = [
  { name: 'linux-x64', os: 'linux', cpu: 'x64', debian: 'amd64' },
  { name: 'linux-arm64', os: 'linux', cpu: 'arm64', debian: 'arm64' },
  { name: 'darwin-x64', os: 'darwin', cpu: 'x64' },
]
