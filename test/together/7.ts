// One of the processes that the quick tests share: its share of their files, one after the other.
import { runTogether } from '../support/together.ts'

runTogether(import.meta.filename)
