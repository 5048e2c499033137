// The most that an operator may refund of one charge, as it is written in commands and settings: `50 USD`.
import { UsageError } from '../../lib/errors.ts'
import { minorUnits, readCurrency } from '../../lib/money.ts'
import type { RefundLimits } from './access.ts'

/** Reads limits, one for each currency. Throws a `UsageError` with the name of the option or setting. */
export function readRefundLimits(name: string, texts: readonly string[]): RefundLimits {
  const limits: Record<string, string> = {}
  for (const text of texts) {
    const [, amount, code = ''] = /^([0-9]{1,15}(?:\.[0-9]{1,9})?) ([A-Za-z]{3})$/.exec(text.trim()) ?? []
    if (amount === undefined)
      throw new UsageError(`${name} must be an amount with its currency such as "50 USD", got "${text}".`)
    const currency = code.toUpperCase()
    const units = readCurrency(currency) === undefined ? undefined : minorUnits(currency)
    if (units === undefined) throw new UsageError(`${name}: "${code}" is not a currency of ISO 4217.`)
    if ((amount.split('.')[1] ?? '').replace(/0+$/, '').length > units)
      throw new UsageError(`${name}: ${currency} has ${units} decimal places, got "${amount}".`)
    if (currency in limits) throw new UsageError(`${name} has ${currency} twice.`)
    limits[currency] = amount
  }
  return limits
}
