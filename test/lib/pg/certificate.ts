// A self-signed certificate for a TLS server of a test: X.509 with as few fields as possible.
import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto'

export interface Certificate {
  /** Both as PEM. */
  key: string
  cert: string
}

/** A certificate for a server of this name, valid from yesterday for a few days. */
export function makeCertificate(name: string): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = sequence(set(sequence(COMMON_NAME, tagged(0x0c, Buffer.from(name)))))
  const dayMs = 24 * 3600 * 1000
  const body = sequence(
    tagged(0xa0, integer(2)),
    integer(Date.now()),
    ECDSA_WITH_SHA256,
    issuer,
    sequence(time(Date.now() - dayMs), time(Date.now() + 7 * dayMs)),
    issuer,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(sequence(SUBJECT_ALT_NAME, tagged(0x04, sequence(tagged(0x82, Buffer.from(name))))))),
  )
  const signature = sign('sha256', body, privateKey)
  const der = sequence(body, ECDSA_WITH_SHA256, tagged(0x03, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: new X509Certificate(der).toString(),
  }
}

// Object identifiers, encoded.
const ECDSA_WITH_SHA256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'))
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex')

function tagged(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const head = length < 128 ? [tag, length] : [tag, 0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from(head), content])
}

function sequence(...items: Buffer[]): Buffer {
  return tagged(0x30, ...items)
}

function set(item: Buffer): Buffer {
  return tagged(0x31, item)
}

function integer(value: number): Buffer {
  const digits = value.toString(16)
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex')
  // A first byte from 80 on would be a negative number.
  return tagged(0x02, bytes[0]! < 0x80 ? bytes : Buffer.concat([Buffer.from([0]), bytes]))
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/\.\d+/, '').replaceAll(/[-:T]/g, '').slice(2)
  return tagged(0x17, Buffer.from(text))
}
