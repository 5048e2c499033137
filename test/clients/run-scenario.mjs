// Runs the scenario in this Node: CONFIG=json node run-scenario.mjs
import { scenario } from './scenario.mjs'

console.log(JSON.stringify(await scenario(JSON.parse(process.env.CONFIG))))
