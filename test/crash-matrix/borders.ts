// Numbers the sends to PostgreSQL and receives from it in a process, and kills the process at one of these borders.
import { Socket } from 'node:net'

export interface Borders {
  /** The number of borders crossed since `arm`. */
  crossed: number
  /** Restarts the count, and kills the process at this border, from 1; 0 does not kill it. */
  arm(dieAt: number): void
}

/**
 * Watches every connection to PostgreSQL that this process opens. There is a border before each send, and before received data
 * is read: the process dies before its statement is sent, or after it is executed without knowing its result.
 */
export function watchBorders(): Borders {
  let dieAt = 0
  const borders: Borders = {
    crossed: 0,
    arm(given) {
      borders.crossed = 0
      dieAt = given
    },
  }
  const cross = () => {
    borders.crossed += 1
    if (borders.crossed === dieAt) process.kill(process.pid, 'SIGKILL')
  }
  const { connect, write, emit } = Socket.prototype
  const watched = new WeakSet<Socket>()
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
    if (JSON.stringify(given).includes('.s.PGSQL.')) watched.add(this)
    return Reflect.apply(connect, this, given)
  } as typeof connect
  Socket.prototype.write = function (this: Socket, ...given: unknown[]) {
    if (watched.has(this)) cross()
    return Reflect.apply(write, this, given)
  } as typeof write
  Socket.prototype.emit = function (this: Socket, name: string, ...given: unknown[]) {
    if (name === 'data' && watched.has(this)) cross()
    return Reflect.apply(emit, this, [name, ...given])
  } as typeof emit
  return borders
}
