// Reads JSON so that each number in a free-form object is copied with the digits that the server sent.
import { readOwnJson } from './read.ts'

// A number that `JSON.parse` may change: with a fraction, an exponent, more digits than a double keeps, or -0. Few lines have one,
// and the exact reader takes several times as long.
const MAY_HAVE_INEXACT = /(?:^|":|[,[])\s*(?:-?(?:[0-9]{16}|[0-9]+[.eE])|-0)/

/** Such numbers become `JsonNumber`, which `JSON.stringify` writes with their original digits. */
export function readExact(text: string): unknown {
  return MAY_HAVE_INEXACT.test(text) ? readOwnJson(text) : JSON.parse(text)
}
