// Runs the scenario where only the web's own interfaces exist: no process, no require, no module of Node.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import vm from 'node:vm'

const { fetch, URL, URLSearchParams, Headers, Response, AbortController, AbortSignal, TextDecoder, TextEncoder } =
  globalThis
const timers = { setTimeout, clearTimeout }
const web = { fetch, URL, URLSearchParams, Headers, Response, AbortController, AbortSignal, TextDecoder, TextEncoder }
const context = vm.createContext({ ...web, ...timers, Uint8Array })
const modules = new Map()

function load(path) {
  if (!modules.has(path)) {
    modules.set(path, new vm.SourceTextModule(readFileSync(path, 'utf8'), { context, identifier: path }))
  }
  return modules.get(path)
}

// A bundler would put the one dependency, which is a CommonJS module, beside the client.
function loadDependency(name, from) {
  const exported = createRequire(from)(name)
  return new vm.SyntheticModule(
    ['Webhook'],
    function () {
      this.setExport('Webhook', exported.Webhook)
    },
    { context, identifier: name },
  )
}

const link = (specifier, { identifier }) => {
  if (specifier === '@tundish/client') return load(resolve('node_modules/@tundish/client/dist/index.js'))
  if (specifier.startsWith('.')) return load(join(dirname(identifier), specifier))
  if (specifier === 'standardwebhooks') return loadDependency(specifier, identifier)
  throw new Error(`A worker has no ${specifier}.`)
}
const main = load(resolve('scenario.mjs'))
await main.link(link)
await main.evaluate()
console.log(JSON.stringify(await main.namespace.scenario(JSON.parse(process.env.CONFIG))))
