// Imports many random Stripe accounts: `main.ts [accounts] [first seed]`. Stops at the first batch that is not right, and names it.

import { openStripeImports, type StripeImports } from '../data/ingest/stripe/stripe-imports.ts'
import { globalSetup, globalTeardown } from '../support/global-setup.ts'
import { checkAccounts } from './check.ts'

const AT_ONCE = 10
const [count, first] = [Number(process.argv[2] ?? 10_000), Number(process.argv[3] ?? 1)]

await globalSetup()
try {
  await checkAll(await openStripeImports())
} finally {
  await globalTeardown()
}

async function checkAll(all: StripeImports): Promise<void> {
  let objects = 0
  try {
    for (let done = 0; done < count; done += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, n) => first + done + n)
      objects += await checkAccounts(all, seeds).catch((error) => {
        console.error(`Seeds ${seeds[0]} to ${seeds.at(-1)} are not right.`)
        throw error
      })
      if ((done / AT_ONCE) % 10 === 9) console.log(`${done + seeds.length} accounts with ${objects} objects are right.`)
    }
    console.log(
      `All ${count} accounts, with ${objects} objects, are imported to their end with the right sums and prices.`,
    )
  } finally {
    await all.close()
  }
}
