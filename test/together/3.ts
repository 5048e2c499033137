// One of the processes that the quick tests share, which run files one after the other.
import { runTogether } from '../support/together.ts'

await runTogether()
