// Fields of Stripe's objects that are null: the simulator fills them later, or never.

type Names<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Names<Rest> : Text

/** An object with these fields, named with blanks between them, all of them null. */
export const nulls = <const Text extends string>(names: Text) =>
  Object.fromEntries(names.split(' ').map((name) => [name, null])) as Record<Names<Text>, null>
