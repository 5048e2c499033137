// Where HAProxy is on this machine, if it is there.
import { existsSync } from 'node:fs'

export const HAPROXY = ['/usr/sbin/haproxy', '/usr/local/sbin/haproxy'].find((path) => existsSync(path))

export const WITHOUT_HAPROXY = 'This needs HAProxy. On Debian, as root: apt-get install haproxy\n'
