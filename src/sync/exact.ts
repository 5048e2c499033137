// Reads JSON so that each number in a free-form object is copied with the digits that the server sent.
import { readJson } from '../lib/json/read.ts'

// A number that may be odd: with a fraction, an exponent, or more digits than a double keeps. Few lines have one, and the
// exact reader takes several times as long.
const MAY_BE_ODD = /(?:^|":|[,[])\s*-?(?:[0-9]{16}|[0-9]+[.eE])/

/** Odd numbers become `JsonNumber`, which `JSON.stringify` writes with their original digits. */
export function readExact(text: string): unknown {
  return MAY_BE_ODD.test(text) ? readJson(text, { exact: true }) : JSON.parse(text)
}
