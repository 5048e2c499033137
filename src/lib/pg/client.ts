// The client for connections to PostgreSQL whose address comes from a setting or an option.
import pg from 'pg'
import { wireOf } from './protocol.ts'

// Not one with a percent sign that encodes nothing, which `pg` takes as it is.
const NAME = /^\w+:\/\/[^/?#]*\/((?:[^?#%]|%[0-9a-f]{2})+)(?![^?#])/i

/**
 * Closes a connection at its error: `pg` leaves one whose password is missing to the server, which waits for a minute. Decodes all of the
 * database's name: `pg` leaves `%40`, `%2F` and the like in it as they are.
 */
export class Client extends pg.Client {
  constructor(config: pg.ClientConfig = {}) {
    super(config)
    const name = NAME.exec(config.connectionString ?? '')?.[1]
    if (name !== undefined) this.#name(decodeURIComponent(name))
    const wire = wireOf(this)
    wire.on('error', () => wire.stream.destroy())
  }
  #name(database: string) {
    this.database = database
    ;(this as unknown as { connectionParameters: pg.ClientConfig }).connectionParameters.database = database
  }
}
