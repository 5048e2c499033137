// Runs the simulator with Stripe's API in its own process. It delays each response by 50 ms.
import { openLog } from '../src/lib/log.ts'
import { startStripeSimulator } from '../src/simulators/stripe/server.ts'

const LATENCY_MS = 50

const simulator = await startStripeSimulator({
  port: 0,
  ledgerFile: process.argv[2]!,
  log: openLog('error'),
  latencyMs: LATENCY_MS,
})
process.on('SIGTERM', () => simulator.close())
process.send!({ url: simulator.url })
