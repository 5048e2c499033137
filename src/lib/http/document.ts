// Converts the collected OpenAPI document for client generators: named components, unions as `anyOf`, formats.
import { isDeepStrictEqual } from 'node:util'

type Node = { [keyword: string]: unknown }

interface Document extends Node {
  components?: Node
}

/**
 * The document with every titled schema of a path, and every object inside one, in `components.schemas` under its own name, and
 * `$ref` where it is used. Throws when two different schemas have one name.
 */
export function withComponents(document: Document): Document {
  const schemas: Node = {}
  const converted = convertDocument(document, { schemas, path: '' }) as Document
  const { paths, webhooks } = converted
  const kept = namesIn(paths, schemas)
  const used = Object.entries(schemas).filter(([name]) => kept.has(name))
  const sorted = Object.fromEntries(used.sort(([a], [b]) => (a < b ? -1 : 1)))
  return {
    ...converted,
    ...(isNode(webhooks) && { webhooks: withoutOwnComponents(webhooks, kept, schemas) }),
    components: { ...converted.components, schemas: sorted },
  }
}

const PREFIX = '#/components/schemas/'

/** The names of the components that are used here, also by each other. */
function namesIn(node: unknown, schemas: Node, found = new Set<string>()): Set<string> {
  if (Array.isArray(node)) for (const one of node) namesIn(one, schemas, found)
  if (!isNode(node)) return found
  const name = typeof node.$ref === 'string' ? node.$ref.slice(PREFIX.length) : undefined
  if (name !== undefined && !found.has(name)) namesIn(schemas[name], schemas, found.add(name))
  for (const value of Object.values(node)) namesIn(value, schemas, found)
  return found
}

/**
 * The webhooks with the schemas that no path uses in place of the references to them: by default, a generator for Go leaves out the
 * components that only webhooks use, and its code then names types that do not exist.
 */
function withoutOwnComponents(node: unknown, kept: ReadonlySet<string>, schemas: Node): unknown {
  if (Array.isArray(node)) return node.map((one) => withoutOwnComponents(one, kept, schemas))
  if (!isNode(node)) return node
  const { $ref, ...rest } = node
  const name = typeof $ref === 'string' ? $ref.slice(PREFIX.length) : undefined
  const whole = name === undefined || kept.has(name) ? node : { ...(schemas[name] as Node), ...rest }
  return Object.fromEntries(
    Object.entries(whole).map(([key, value]) => [key, withoutOwnComponents(value, kept, schemas)]),
  )
}

interface Place {
  schemas: Node
  /** The name that an object without a title gets here; empty where there is none to derive. */
  path: string
}

/** Copies the document and converts the schema under every key `schema`. */
function convertDocument(node: unknown, place: Place): unknown {
  if (Array.isArray(node)) return node.map((one) => convertDocument(one, place))
  if (!isNode(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [
      key,
      key === 'schema' && isNode(value) ? convertSchema(value, place) : convertDocument(value, place),
    ]),
  )
}

function convertSchema(schema: Node, place: Place, nullable = false): Node {
  if (Array.isArray(schema.type)) return convertUnion(schema, schema.type, place)
  const { title, ...rest } = schema
  const name = typeof title === 'string' ? title : isNode(schema.properties) || nullable ? place.path : ''
  // The description belongs to the use: two uses of one component may have different ones.
  const { description, ...component } = convertKeywords(rest, { ...place, path: name || place.path })
  if (name === '') return { ...(description !== undefined && { description }), ...component }
  add(place.schemas, name, component)
  const reference = { $ref: `${PREFIX}${name}` }
  return description === undefined ? reference : { description, ...reference }
}

function add(schemas: Node, name: string, schema: Node): void {
  const known = schemas[name]
  if (known !== undefined && !isDeepStrictEqual(known, schema)) {
    throw new Error(
      `Bug: two different schemas are called ${name}: ${JSON.stringify(known)}, ${JSON.stringify(schema)}`,
    )
  }
  schemas[name] = schema
}

function convertKeywords({ patternProperties, const: only, ...schema }: Node, place: Place): Node {
  const values = only === undefined ? schema.enum : [only]
  const { properties, items, additionalProperties, anyOf } = schema
  return {
    ...schema,
    ...formatOf(schema),
    ...(values !== undefined && { enum: values }),
    // Generators cannot name an empty enum member.
    ...(isDeepStrictEqual(values, ['']) && { enum: undefined, maxLength: 0 }),
    ...(isNode(properties) && { properties: convertProperties(properties, place) }),
    ...(isNode(items) && { items: convertSchema(items, { ...place, path: singular(place.path) }) }),
    ...(isNode(additionalProperties) && { additionalProperties: convertSchema(additionalProperties, place) }),
    ...(isNode(patternProperties) && { additionalProperties: onlyValue(patternProperties, place) }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map((one: Node) => convertSchema(one, place)) }),
  }
}

function convertProperties(properties: Node, place: Place): Node {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      convertSchema(schema as Node, { ...place, path: place.path + pascal(name) }),
    ]),
  )
}

/** `Type.Record` has one pattern, which every name matches. */
function onlyValue(patternProperties: Node, place: Place): Node {
  return convertSchema(Object.values(patternProperties)[0] as Node, place)
}

// Integers are up to 15 digits long; a generator's default is 32 bits. Decimals without a format become 32-bit floats in Go.
const FORMATS: Record<string, string> = { integer: 'int64', number: 'double' }

function formatOf({ type, format }: Node): Node {
  const wanted = typeof type === 'string' && format === undefined ? FORMATS[type] : undefined
  return wanted === undefined ? {} : { format: wanted }
}

// Keywords that say something about a value of one type only.
const BY_TYPE: Record<string, readonly string[]> = {
  string: ['minLength', 'maxLength', 'pattern', 'format', 'enum', 'const'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'format'],
  integer: ['minimum', 'maximum', 'format', 'enum'],
  array: ['items', 'minItems', 'maxItems'],
  object: ['title', 'properties', 'required', 'additionalProperties', 'patternProperties'],
  boolean: [],
  null: [],
}
const TYPED = new Set(Object.values(BY_TYPE).flat())

/**
 * `type: [string, array, null]` as `anyOf`, each variant with the keywords that concern it. One type or null stays as it
 * is: generators know that form best. Not so with an enum, from which null has to go, and with an object, which gets a name.
 */
function convertUnion(schema: Node, types: string[], place: Place): Node {
  const { type: _type, ...keywords } = schema
  const [only, ...others] = types.filter((type) => type !== 'null')
  const isNullable = types.includes('null')
  if (others.length === 0 && isNullable && schema.enum === undefined && only !== 'object') {
    const { type: _converted, ...rest } = convertKeywords({ ...schema, type: only }, place)
    return { ...rest, type: [only, 'null'] }
  }
  const shared = Object.fromEntries(Object.entries(keywords).filter(([keyword]) => !TYPED.has(keyword)))
  // Of several types, generators for Java and Python take null with a type only, not as a separate variant.
  const variants = (others.length === 0 ? types : [only!, ...others]).map((type) => {
    const own = Object.entries(keywords).filter(([keyword]) => BY_TYPE[type]!.includes(keyword))
    return convertSchema({ type, ...Object.fromEntries(own.map(withoutNull)) }, place, type === 'object')
  })
  if (others.length > 0 && isNullable) variants[0]!.type = [only, 'null']
  return { ...shared, anyOf: variants }
}

function withoutNull([keyword, value]: [string, unknown]): [string, unknown] {
  return [keyword, keyword === 'enum' ? (value as unknown[]).filter((one) => one !== null) : value]
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

const singular = (name: string) => name.replace(/s$/, '')

const pascal = (name: string) => name.replace(/(?:^|_)([a-z])/g, (_all, letter: string) => letter.toUpperCase())
