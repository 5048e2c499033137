// A process that does one piece of work of the crash matrix, and dies at a given border; otherwise it reports the number of borders.
import { watchBorders } from './borders.ts'
import { openWork, type Subject } from './works.ts'

const borders = watchBorders()
const work = await openWork(process.env.WORK!, process.env)
process.on('message', async ({ subject, dieAt }: { subject: Subject; dieAt: number }) => {
  borders.arm(dieAt)
  await work.run(subject)
  process.send!({ crossed: borders.crossed })
})
process.on('disconnect', () => process.exit())
process.send!('ready')
