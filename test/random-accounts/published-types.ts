// Reads the shapes of Stripe's objects from the types that its npm package publishes.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Shape =
  | { is: 'string' | 'number' | 'boolean' | 'null' | 'decimal' | 'absent' | 'anything' }
  /** Any other text, where new values may come. */
  | { is: 'other' }
  | { is: 'literal'; value: string | number | boolean }
  | { is: 'array' | 'list' | 'map'; of: Shape }
  | { is: 'union'; of: Shape[] }
  /** An interface, by its full name. */
  | { is: 'named'; name: string }

export interface Field {
  shape: Shape
  isOptional: boolean
}

interface Declared {
  scope: string[]
  fields?: Map<string, Field>
  alias?: Shape
}

const declared = new Map<string, Declared>()

/** The fields of an interface, such as `Charge` or `Charge.Outcome`. */
export function fieldsOf(name: string): Map<string, Field> {
  const found = find(name)
  if (!found?.fields) throw new Error(`Stripe's package declares no interface ${name}`)
  return found.fields
}

/** The shape that a name stands for: that of an alias, else the name itself. */
export function resolve(shape: Shape): Shape {
  if (shape.is !== 'named') return shape
  const found = find(shape.name)
  if (found?.alias) return resolve(found.alias)
  return found ? shape : { is: 'anything' }
}

function find(name: string): Declared | undefined {
  if (declared.size === 0) readAll()
  return declared.get(name)
}

function readAll(): void {
  const folder = join(dirname(fileURLToPath(import.meta.resolve('stripe'))), '..', 'cjs')
  for (const file of [join(folder, 'shared.d.ts'), ...globSync(join(folder, 'resources/*.d.ts'))])
    new Reader(readFileSync(file, 'utf8')).declarations([])
  for (const [name, one] of declared) {
    const scope = [...one.scope, name.split('.').at(-1)!]
    if (one.alias) one.alias = qualified(one.alias, scope)
    for (const field of one.fields?.values() ?? []) field.shape = qualified(field.shape, scope)
  }
}

/** With the full names of what it refers to, found from the inner scope outwards. */
function qualified(shape: Shape, scope: string[]): Shape {
  if (shape.is === 'union') return { is: 'union', of: shape.of.map((one) => qualified(one, scope)) }
  if ('of' in shape) return { ...shape, of: qualified(shape.of as Shape, scope) } as Shape
  if (shape.is !== 'named') return shape
  for (let length = scope.length; length >= 0; length--) {
    const name = [...scope.slice(0, length), shape.name].join('.')
    if (declared.has(name)) return { is: 'named', name }
  }
  return shape
}

const TOKEN =
  /\s*(?:\/\*[\s\S]*?\*\/|\/\/.*|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|=>|[A-Za-z_$][\w$]*|-?\d+(?:\.\d+)?|\S))/y
const NAMES: Record<string, Shape['is']> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
  void: 'absent',
  undefined: 'absent',
  Decimal: 'decimal',
  OtherString: 'other',
  true: 'literal',
  false: 'literal',
}

/** Reads the declarations that this package uses: interfaces, aliases and namespaces. Others are skipped. */
class Reader {
  readonly #tokens: string[] = []
  #at = 0

  constructor(text: string) {
    TOKEN.lastIndex = 0
    for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) if (match[1]) this.#tokens.push(match[1])
  }

  declarations(scope: string[]): void {
    while (this.#at < this.#tokens.length && this.#now !== '}') {
      const word = this.#take()
      if (word === 'export' || word === 'declare') continue
      if (word === 'interface') this.#interface(scope)
      else if (word === 'type') this.#alias(scope)
      else if (word === 'namespace') this.#namespace(scope)
      else this.#skip()
    }
  }

  #interface(scope: string[]): void {
    const name = this.#take()
    while (this.#now !== '{') this.#take()
    declared.set([...scope, name].join('.'), { scope, fields: this.#fields() })
  }

  #alias(scope: string[]): void {
    const name = this.#take()
    while (this.#now !== '=') this.#take()
    this.#take()
    const start = this.#at
    const alias = this.#shape()
    const isWhole = this.#isNow(';')
    if (!isWhole) this.#at = start
    this.#skip()
    declared.set([...scope, name].join('.'), { scope, alias })
  }

  #namespace(scope: string[]): void {
    const name = this.#take()
    this.#take()
    this.declarations([...scope, name])
    this.#take()
  }

  #fields(): Map<string, Field> {
    const fields = new Map<string, Field>()
    this.#take()
    while (this.#now !== '}') {
      if (this.#now === 'readonly') this.#take()
      if (this.#now === '[') {
        fields.set('[key]', { shape: this.#indexed(), isOptional: true })
        continue
      }
      const name = this.#take().replaceAll(/['"]/g, '')
      const isOptional = this.#now === '?'
      if (isOptional) this.#take()
      this.#take()
      fields.set(name, { shape: this.#shape(), isOptional })
      if (this.#now === ';') this.#take()
    }
    this.#take()
    return fields
  }

  #indexed(): Shape {
    while (this.#take() !== ']');
    this.#take()
    const shape = this.#shape()
    if (this.#now === ';') this.#take()
    return shape
  }

  #shape(): Shape {
    if (this.#now === '|') this.#take()
    const all = [this.#single()]
    while (this.#now === '|') {
      this.#take()
      all.push(this.#single())
    }
    return all.length === 1 ? all[0]! : { is: 'union', of: all }
  }

  #single(): Shape {
    const word = this.#take()
    if (/^['"]/.test(word)) return { is: 'literal', value: word.slice(1, -1) }
    if (/^-?\d/.test(word)) return { is: 'literal', value: Number(word) }
    if (word === 'true' || word === 'false') return { is: 'literal', value: word === 'true' }
    if (word === '{') {
      this.#at -= 1
      const fields = this.#fields()
      const key = fields.get('[key]')
      return key ? { is: 'map', of: key.shape } : { is: 'anything' }
    }
    if (word === '(') {
      const inner = this.#shape()
      this.#take()
      return inner
    }
    if (NAMES[word]) return { is: NAMES[word] } as Shape
    let name = word
    while (this.#now === '.') {
      this.#take()
      name += `.${this.#take()}`
    }
    if (this.#now !== '<') return { is: 'named', name }
    this.#take()
    const inner = this.#shape()
    this.#take()
    return name === 'Array'
      ? { is: 'array', of: inner }
      : name === 'ApiList'
        ? { is: 'list', of: inner }
        : { is: 'anything' }
  }

  /** To the end of a statement or a block. */
  #skip(): void {
    for (let depth = 0; this.#at < this.#tokens.length; ) {
      const word = this.#take()
      if ('{(['.includes(word)) depth += 1
      if ('})]'.includes(word)) depth -= 1
      if (depth === 0 && (word === ';' || word === '}')) {
        if (this.#now === 'from') continue
        return
      }
    }
  }

  #isNow(token: string): boolean {
    return this.#now === token
  }

  get #now(): string {
    return this.#tokens[this.#at] ?? ''
  }

  #take(): string {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new Error('The file ends within a declaration')
    return token
  }
}

/** Every deviation of an object from the interface: unknown and missing fields, and values of another type. */
export function deviations(name: string, value: unknown, at = name): string[] {
  if (typeof value !== 'object' || value === null) return [`${at} is no object`]
  const fields = fieldsOf(name)
  const extra = fields.get('[key]')
  const missing = [...fields].flatMap(([field, { isOptional, shape }]) =>
    isOptional || field === '[key]' || isAbsent(shape) || field in value ? [] : [`${at}.${field} is missing`],
  )
  const wrong = Object.entries(value).flatMap(([field, inner]) => {
    const shape = (fields.get(field) ?? extra)?.shape
    return shape ? deviationsOf(shape, inner, `${at}.${field}`) : [`${at}.${field} is unknown`]
  })
  return [...missing, ...wrong]
}

const isAbsent = (shape: Shape) => resolve(shape).is === 'absent'

function deviationsOf(given: Shape, value: unknown, at: string): string[] {
  const shape = resolve(given)
  if (shape.is === 'union') {
    const all = shape.of.map((one) => deviationsOf(one, value, at))
    return all.find((found) => found.length === 0) ?? all.sort((one, other) => one.length - other.length)[0]!
  }
  if (shape.is === 'named') return deviations(shape.name, value, at)
  const wrong = [`${at} is no ${shape.is}: ${JSON.stringify(value)?.slice(0, 60)}`]
  if (shape.is === 'array')
    return Array.isArray(value) ? value.flatMap((one) => deviationsOf(shape.of, one, `${at}[]`)) : wrong
  if (shape.is === 'list' || shape.is === 'map') {
    if (typeof value !== 'object' || value === null) return wrong
    const items = shape.is === 'list' ? (value as { data: unknown[] }).data : Object.values(value)
    return items.flatMap((one) => deviationsOf(shape.of, one, `${at}[]`))
  }
  if (shape.is === 'anything') return []
  if (shape.is === 'literal') return value === shape.value ? [] : wrong
  if (shape.is === 'null') return value === null ? [] : wrong
  const type = shape.is === 'other' || shape.is === 'decimal' ? 'string' : shape.is
  return typeof value === type ? [] : wrong
}
