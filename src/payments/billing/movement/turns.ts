// Limits the concurrent status checks of each merchant account, so that an account whose provider hangs does not delay the others.

/** Of an order, or of a refund with its order. */
interface Row {
  organization_id: string
  psp: string
  psp_merchant_id: string | null
}

/** How many rows may be taken: in all, of an account that is not named, and of those that are. */
export interface Room {
  most: number
  perAccount: number
  accounts: { organizationId: string; psp: string; merchantId: string | null; room: number }[]
}

export interface AccountTurns {
  room(): Room
  begin(row: Row): void
  /** @param hung whether the check took so long that the provider probably hangs */
  end(row: Row, hung: boolean): void
}

// Concurrent checks of one account, and of one whose provider hangs: one check tries whether it responds again.
const PER_ACCOUNT = 8
const PER_HANGING_ACCOUNT = 1

interface Account {
  organizationId: string
  psp: string
  merchantId: string | null
  underWay: number
  isHanging: boolean
}

/** At most `most` checks at once. */
export function createAccountTurns(most: number): AccountTurns {
  const accounts = new Map<string, Account>()
  let underWay = 0

  const keyOf = ({ organization_id, psp, psp_merchant_id }: Row) =>
    JSON.stringify([organization_id, psp, psp_merchant_id])

  return {
    room: () => ({
      most: most - underWay,
      perAccount: PER_ACCOUNT,
      accounts: Array.from(accounts.values(), ({ underWay: busy, isHanging, ...name }) => ({
        ...name,
        room: Math.max(0, (isHanging ? PER_HANGING_ACCOUNT : PER_ACCOUNT) - busy),
      })),
    }),
    begin(row) {
      const { organization_id: organizationId, psp, psp_merchant_id: merchantId } = row
      const account = accounts.get(keyOf(row)) ?? { organizationId, psp, merchantId, underWay: 0, isHanging: false }
      accounts.set(keyOf(row), account)
      account.underWay++
      underWay++
    },
    end(row, hung) {
      const account = accounts.get(keyOf(row))!
      account.underWay--
      underWay--
      account.isHanging = hung
      if (account.underWay === 0 && !hung) accounts.delete(keyOf(row))
    },
  }
}
