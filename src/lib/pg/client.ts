// The client for connections to PostgreSQL whose address comes from a setting or an option.
import pg from 'pg'
import { wireOf } from './protocol.ts'

/** Closes a connection at its error. `pg` leaves one whose password is missing to the server, which waits for a minute. */
export class Client extends pg.Client {
  constructor(config: pg.ClientConfig = {}) {
    super(config)
    const wire = wireOf(this)
    wire.on('error', () => wire.stream.destroy())
  }
}
