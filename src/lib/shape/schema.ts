// Functions that build JSON Schemas as plain objects, for bodies, queries and the description. Each schema knows the type of its values.

declare const TYPE: unique symbol
declare const OPTIONAL: unique symbol

/** What describes values of the type `T`. The property exists for the compiler only. */
export interface Typed<T> {
  readonly [TYPE]?: T
}

/** The type of the values that a schema or a field describes; of a schema written by hand, `unknown`. */
export type TypeOf<S> = S extends Typed<infer T> ? T : unknown

/** A JSON Schema with any keywords. */
export interface Schema<T = unknown> extends Typed<T> {
  type?: unknown
  [keyword: string]: unknown
}

type Properties = Record<string, Schema>

export interface ObjectSchema<P extends Properties = Properties> extends Schema<ObjectOf<P>> {
  type: 'object'
  properties: P
  required?: string[]
}

interface OptionalSchema<T> extends Schema<T> {
  readonly [OPTIONAL]: true
}

type Flat<T> = { [K in keyof T]: T[K] }
type ObjectOf<P> = Flat<
  { [K in keyof P as P[K] extends OptionalSchema<unknown> ? never : K]: TypeOf<P[K]> } & {
    [K in keyof P as P[K] extends OptionalSchema<unknown> ? K : never]?: TypeOf<P[K]>
  }
>

/** `E` if there are any, else `Otherwise`. */
export type EnumOr<E, Otherwise> = [E] extends [never] ? Otherwise : E

interface TextKeywords<E extends string> {
  enum?: readonly E[]
  [keyword: string | symbol]: unknown
}

/** Marks optional properties; JSON Schema lists the required ones on the object instead. */
const optional = new WeakSet<Schema>()

const typed =
  <T>(type: string) =>
  (keywords: object = {}): Schema<T> => ({ type, ...keywords })

export const Type = {
  String: <const E extends string = never>(keywords?: TextKeywords<E>): Schema<EnumOr<NoInfer<E>, string>> => ({
    type: 'string',
    ...keywords,
  }),
  Integer: typed<number>('integer'),
  Number: typed<number>('number'),
  Boolean: typed<boolean>('boolean'),
  Null: typed<null>('null'),
  Unknown: (): Schema => ({}),
  Literal: <const V extends string>(value: V, keywords: object = {}): Schema<V> => ({
    type: 'string',
    const: value,
    ...keywords,
  }),
  Array: <S extends Schema>(items: S, keywords: object = {}): Schema<TypeOf<S>[]> => ({
    type: 'array',
    items,
    ...keywords,
  }),
  Union: <const S extends readonly Schema[]>(anyOf: S, keywords: object = {}): Schema<TypeOf<S[number]>> => ({
    anyOf,
    ...keywords,
  }),
  /** What the schema describes, or null. */
  OrNull: <S extends Schema>(schema: S, description?: string): Schema<TypeOf<S> | null> => ({
    anyOf: [schema, Type.Null()],
    ...(description !== undefined && { description }),
  }),
  /** An object with properties of any name and this schema. */
  Record: <S extends Schema>(value: S, keywords: object = {}): Schema<Record<string, TypeOf<S>>> => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...keywords,
  }),
  Object<P extends Properties>(properties: P, keywords: object = {}): ObjectSchema<P> {
    const required = Object.keys(properties).filter((name) => !optional.has(properties[name]!))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...keywords }
  },
  /** An object with these properties and no others, by its name in the description. */
  Named: <P extends Properties>(title: string, properties: P, keywords: object = {}): ObjectSchema<P> =>
    Type.Object(properties, { title, additionalProperties: false, ...keywords }),
  Optional<S extends Schema>(schema: S): OptionalSchema<TypeOf<S>> {
    const marked = { ...schema } as Schema as OptionalSchema<TypeOf<S>>
    optional.add(marked)
    return marked
  },
}
