// The drawing of docs/connect.md: where a visit, a payment and a person meet.
const WIDTH = 1280
export const CONNECT_HEIGHT = 560

const box = (x: number, y: number, width: number, height: number, title: string, lines: string[], kind = '') => `
  <g class="${kind}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="10"/>
  <text class="title" x="${x + width / 2}" y="${y + 30}">${title}</text>
  ${lines.map((line, n) => `<text x="${x + width / 2}" y="${y + 56 + n * 22}">${line}</text>`).join('')}</g>`

/** An arrow along these points, with its label at a place. */
const arrow = (points: string, [x, y]: [number, number], lines: string[], anchor = 'middle') => `
  <polyline points="${points}" marker-end="url(#end)"/>
  ${lines.map((line, n) => `<text class="${n === 0 ? 'step' : 'note'}" style="text-anchor: ${anchor}" x="${x}" y="${y + n * 20}">${line}</text>`).join('')}`

export const CONNECT_PICTURE = `<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; background: #fff }
  text { font: 16px system-ui, sans-serif; fill: #1f2937; text-anchor: middle }
  .title { font-weight: 600; font-size: 18px }
  .step { font-weight: 600 }
  .note { font-size: 14px; fill: #4b5563 }
  rect { fill: #f3f4f6; stroke: #9ca3af; stroke-width: 1.5 }
  .person rect { fill: #dcfce7; stroke: #15803d; stroke-width: 2.5 }
  .inner rect { fill: #fff }
  polyline { fill: none; stroke: #374151; stroke-width: 2 }
</style><svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${CONNECT_HEIGHT}" viewBox="0 0 ${WIDTH} ${CONNECT_HEIGHT}">
  <defs><marker id="end" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
    <path d="M0 0 10 5 0 10z" fill="#374151"/></marker></defs>
  ${box(30, 60, 200, 110, 'Browser', ['of a visitor', 'keeps pro_ada, ses_ada'])}
  ${box(30, 390, 200, 110, 'Stripe', ['cus_7, sub_7, ch_7', 'with your metadata'])}
  ${box(430, 60, 200, 440, 'Your server', ['holds all keys'])}
  ${box(850, 20, 400, 520, 'Tundish', [])}
  ${box(880, 75, 340, 100, 'Visit', ['session ses_ada of a funnel', 'its answers'], 'inner')}
  ${box(880, 215, 340, 130, 'Person', ['one profile: pro_ada', 'e-mail address, credits, erasure', 'customer ada'], 'person')}
  ${box(880, 385, 340, 125, 'Payment', ['subscription sub_7, payment ch_7', 'charges of the saved card', 'figures of funnel and campaign'], 'inner')}
  <polyline points="1050,175 1050,213" marker-end="url(#end)"/><polyline points="1050,385 1050,347" marker-end="url(#end)"/>
  ${arrow('230,115 428,115', [329, 85], ['1 · visits, answers'])}
  ${arrow('630,125 878,125', [742, 78], ['2 · POST /records', 'key of the project: write'])}
  ${arrow('430,330 130,330 130,388', [280, 278], ['3 · checkout session, metadata', 'tundish_profile = pro_ada', 'tundish_session = ses_ada'])}
  ${arrow('60,170 60,388', [72, 240], ['4 · pays'], 'start')}
  ${arrow('130,500 130,530 750,530 750,485 878,485', [530, 520], ['5 · import, followed; notifications'])}
  ${arrow('630,420 878,420', [742, 370], ['6 · charges again', 'customer ada; key of the', 'organization: charge'])}
  ${arrow('878,280 632,280', [742, 235], ['7 · webhooks, signed', 'webhook_secret verifies'])}
</svg>`
