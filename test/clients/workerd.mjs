// Runs the scenario in a worker: a request brings the configuration, the response is what the scenario returned.
import { scenario } from './scenario.mjs'

export default {
  async fetch(request) {
    try {
      return Response.json(await scenario(await request.json()))
    } catch (error) {
      return Response.json({ error: String(error.stack ?? error) })
    }
  },
}
