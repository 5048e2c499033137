// A transaction on a connection that the caller holds.

/** Runs `work`, whose statements are sent on the connection of `query`, in a transaction, which is rolled back if it throws. */
export async function inTransaction<T>(query: (text: string) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  await query('begin')
  try {
    const result = await work()
    await query('commit')
    return result
  } catch (error) {
    // A failure of the rollback must not hide the error that led to it.
    await query('rollback').catch(() => {})
    throw error
  }
}
