// Creates commands from the operator's operations. The declaration of the API's route also defines the command's arguments.
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { FULL_ACCESS } from '../../core/tenants/access.ts'
import { ApiError, Refusal, UsageError } from '../../lib/errors.ts'
import { HTTP_CODES } from '../../lib/http/error-codes.ts'
import { readQuery } from '../../lib/http/query.ts'
import { Json } from '../../lib/json/json.ts'
import { readOwnJson } from '../../lib/json/read.ts'
import type { ObjectSchema } from '../../lib/shape/schema.ts'
import { operationsOf } from '../../operator/admin/groups.ts'
import { type Input, isReading, type Operation, perform } from '../../operator/admin/operation.ts'
import { action } from './command.ts'
import { addYes, confirm } from './confirm.ts'
import { FLAGS, isLong, placeholderOf, readValue, type Schema } from './option-values.ts'
import { describeResponse } from './text.ts'
import { readDuration } from './times.ts'

/** The actor for the audit log: the account and the host of the command line. */
export function commandLine(): Actor {
  return { kind: 'command line', id: userName(), source: hostname() }
}

/** In a container the user may be a number without an entry in /etc/passwd: as on OpenShift, which chooses it. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** Performs an operation, one of a group of commands, for a command of it. */
export async function runOperation(
  group: string,
  id: string,
  app: App,
  input: Partial<Input>,
): Promise<Record<string, unknown>> {
  const operation = (await operationsOf(group)).find((one) => one.id === id)
  if (!operation) throw new Error(`Bug: there is no operation ${id}.`)
  return run(operation, app, input)
}

async function run(operation: Operation, app: App, input: Partial<Input>): Promise<Record<string, unknown>> {
  const whole: Input = { params: {}, query: {}, body: {}, ...input, access: FULL_ACCESS }
  const response = await asCommand(operation, () => perform(operation, app, commandLine(), whole))
  return readOwnJson(response instanceof Json ? response.text() : JSON.stringify(response)) as Record<string, unknown>
}

/** Refusals become the errors of the command line, with their exit codes. */
async function asCommand<T>(operation: Operation, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw isBadUsage(operation, error) ? new UsageError(error.message) : new Refusal(error.message)
  }
}

/** A 400 is bad usage, except where the billing API refuses what is well-formed, by the state of the order. */
const isBadUsage = (operation: Operation, { status, code }: ApiError) =>
  status === 400 && (!('act' in operation) || Object.hasOwn(HTTP_CODES, code) || MALFORMED.has(code))

const MALFORMED = new Set(['invalid_value', 'invalid_amount', 'amount_not_positive', 'idempotency_key_required'])

/** Registers a group whose commands are all operations, or a single operation that has the group's name. */
export async function addGroup(program: Command, name: string, description: string): Promise<void> {
  const group = program.command(name).description(description)
  const only = (await operationsOf(name)).find(({ command }) => command === name)
  if (only) addCommand(group, [only])
  else await addOperations(group)
}

/** Adds the commands of a group (`webhook create`, `webhook list`, …) to it, except those in `except`. */
export async function addOperations(group: Command, except: readonly string[] = []): Promise<void> {
  const mine = (await operationsOf(group.name())).filter(({ command }) => !except.includes(command))
  // Keys are an organization's or a project's: two operations, one command.
  for (const [words, alike] of Map.groupBy(mine, ({ command }) => command)) {
    const [, ...names] = words.split(' ')
    addCommand(subgroupOf(group, names.slice(0, -1), mine).command(names.at(-1)!), alike)
  }
}

/** The group of `credits unit create` in `credits`. */
function subgroupOf(group: Command, names: string[], all: Operation[]): Command {
  return names.reduce((parent, name) => {
    const known = parent.commands.find((one) => one.name() === name)
    const verbs = all
      .filter(({ command }) => command.split(' ').at(-2) === name)
      .map(({ command }) => command.split(' ').at(-1)!)
    return known ?? parent.command(name).description(`Commands of a ${name}: ${[...new Set(verbs)].join(', ')}`)
  }, group)
}

// Tenants are given by option, all other parameters of the path by position; `org show ID` takes its tenant by position.
const TENANTS: Record<string, { flag: string; option: string }> = {
  organization_id: { flag: '--org <id>', option: 'org' },
  project_id: { flag: '--project <id>', option: 'project' },
}
const isTenant = ({ command }: Operation, name: string) =>
  name in TENANTS && TENANTS[name]!.option !== command.split(' ')[0]

function addCommand(command: Command, alike: Operation[]): void {
  const [first] = alike as [Operation]
  command.description(summaryOf(alike))
  const tenants = alike.map((operation) => paramsOf(operation).filter((name) => isTenant(operation, name)))
  for (const name of new Set(tenants.flat())) {
    const { flag } = TENANTS[name]!
    if (alike.length === 1) command.requiredOption(flag, `The ${name.replace('_id', '')}`)
    else command.option(flag, `The ${name.replace('_id', '')}`)
  }
  const positionals = positionalsOf(first)
  for (const name of positionals) {
    const schema = propertiesOf(first)[name]
    command.argument(`<${POSITIONAL_NAMES[name] ?? name}>`, schema && helpOf(first, name))
  }
  for (const [name, schema] of Object.entries(propertiesOf(first))) {
    if (positionals.includes(name)) continue
    const flag = flagOf(name, schema)
    if (schemaOf(first)?.required?.includes(name)) command.requiredOption(flag, helpOf(first, name))
    else command.option(flag, helpOf(first, name))
  }
  if (describeOf(first)) addYes(command)
  action(command, async (app: App, ...given: unknown[]) => {
    const options = given[positionals.length] as Record<string, string | undefined>
    const values = Object.fromEntries(positionals.map((name, n) => [name, given[n] as string]))
    const operation = choose(alike, options)
    const input = await inputOf(operation, options, values)
    const describe = describeOf(operation)
    if (describe) {
      await asCommand(operation, async () => operation.checkInput?.(input, app))
      await confirm('yes' in options, () => asCommand(operation, () => describe(app, input)))
    }
    const json = await run(operation, app, input)
    const { columns = undefined, shown = undefined } = isReading(operation) ? operation : {}
    return { json, text: describeResponse(shown ? shown(json) : json, columns) }
  })
}

// The names of positional arguments in the help, where those of the API say less.
const POSITIONAL_NAMES: Record<string, string> = { q: 'word', organization_id: 'id', project_id: 'id' }

/** The API's description of a property, as the other options are described: it names options, and has values and defaults. */
function helpOf(operation: Operation, name: string): string {
  const properties = propertiesOf(operation)
  const schema = properties[name]!
  const { type, enum: choices, description = '', default: value } = schema
  const plain = description
    .replaceAll(/`([a-z]+_[a-z_]+)`/g, (all, word) => (Object.hasOwn(properties, word) ? `--${wordsOf(word)}` : all))
    .replaceAll('`', '')
    .replace(/\.$/, '')
  if (isDuration(name)) return `${plain}: 24h, 90m, 7d${plain.includes('by default') ? '' : '; by default not at all'}`
  if (type === 'array') return `${plain}. Several are separated by commas`
  if (choices && isLong(choices)) return `${plain}: ${choices.join(', ')}`
  if (value !== undefined && value !== false && value !== '') return `${plain} (default: ${value})`
  return hasExample(name, schema) ? `${plain}. For example ${schema.examples![0]}` : plain
}

/** Ids are copied from a list, and choices are in the placeholder. */
const hasExample = (name: string, { enum: choices, examples: [example] = [], description = '' }: Schema) =>
  typeof example === 'string' && !choices && !name.endsWith('_id') && !description.includes('such as')

/** As commands say it. `List the keys of an organization` and `List the keys of a project` are `List the keys of an organization or a project`. */
function summaryOf(alike: Operation[]): string {
  const [first, ...others] = alike.map(({ summary }) => summary.replace(/^Get /, 'Show ').split(' ')) as [
    string[],
    ...string[][],
  ]
  const differing = others.map((words) => words.slice(words.findIndex((word, n) => word !== first[n])).join(' '))
  return [first.join(' '), ...differing.filter((text) => !first.join(' ').endsWith(text))].join(' or ')
}

/** Of the operations that share a command, the one whose tenant was given. */
function choose(alike: Operation[], options: Record<string, string | undefined>): Operation {
  const given = alike.filter((operation) =>
    paramsOf(operation).every((name) => !isTenant(operation, name) || options[TENANTS[name]!.option] !== undefined),
  )
  if (given.length === 1) return given[0]!
  throw new UsageError('Give either --org or --project.')
}

async function inputOf(
  operation: Operation,
  options: Record<string, string | undefined>,
  positionals: Record<string, string>,
): Promise<Input> {
  const params = paramsOf(operation).map((name) => [
    name,
    (isTenant(operation, name) ? options[TENANTS[name]!.option] : positionals[name])!,
  ])
  const given = Object.keys(propertiesOf(operation)).flatMap((name) => {
    const value = positionals[name] ?? options[optionName(name)]
    if (value === undefined) return []
    return [[name, isDuration(name) ? String(readDuration(`--${wordsOf(name)}`, value)) : value] as const]
  })
  const input: Input = { params: Object.fromEntries(params), query: {}, body: {}, access: FULL_ACCESS }
  const schema = schemaOf(operation)
  if (!schema) return input
  try {
    if (isReading(operation))
      return { ...input, query: readQuery(schema, new URLSearchParams(Object.fromEntries(given)).toString()) }
    const properties = propertiesOf(operation)
    const body = Object.fromEntries(given.map(([name, value]) => [name, readValue(name, properties[name]!, value)]))
    if (operation.method === 'PATCH' && given.length === 0) {
      const flags = Object.keys(properties).map((name) => `--${wordsOf(name)}`)
      throw new UsageError(`Nothing to set: give ${flags.join(', ')}.`)
    }
    // Loading the check of bodies takes longer than most commands.
    const { bodyCheck } = await import('../../lib/http/body.ts')
    bodyCheck(schema)(body)
    return { ...input, body }
  } catch (error) {
    throw error instanceof ApiError ? new UsageError(error.message) : error
  }
}

const describeOf = (operation: Operation) => ('describe' in operation ? operation.describe : undefined)
const paramsOf = ({ path }: Operation) => [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => name!)
const schemaOf = (operation: Operation): ObjectSchema | undefined =>
  isReading(operation) ? operation.query : operation.body
const propertiesOf = (operation: Operation) => (schemaOf(operation)?.properties ?? {}) as Record<string, Schema>
/** The positional arguments: parameters of the path, except tenants, and required parameters of the query. */
const positionalsOf = (operation: Operation) => [
  ...paramsOf(operation).filter((name) => !isTenant(operation, name)),
  ...(isReading(operation) ? (operation.query?.required ?? []) : []),
]
// What a body takes in seconds is a duration at the command line: `overlap_seconds` is `--overlap 24h`.
const SECONDS = '_seconds'
const isDuration = (name: string) => name.endsWith(SECONDS)
const wordsOf = (name: string) => (isDuration(name) ? name.slice(0, -SECONDS.length) : name).replaceAll('_', '-')
const flagOf = (name: string, schema: Schema) =>
  FLAGS.has(name)
    ? `--${wordsOf(name)}`
    : `--${wordsOf(name)} <${isDuration(name) ? 'time' : placeholderOf(name, schema)}>`

/** The name under which commander keeps an option's value. */
const optionName = (name: string) => wordsOf(name).replace(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase())
