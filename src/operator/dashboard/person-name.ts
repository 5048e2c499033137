// Texts of the identity provider that are shown and logged: one line, of a limited length.
import { shorten } from '../../lib/text.ts'

export const clean = (text: string): string => shorten(text.replaceAll(/[\p{C}\s]+/gu, ' ').trim(), 100)
