// What charts are made of: colors, dates and numbers as texts, and the table that a chart is drawn from.

// Few colors, each with one meaning: the first is that of what a chart is about, the others tell parts apart. None of them is red.
const PALETTES = {
  light: ['#2f6fd0', '#2a9db0', '#8a5fc7', '#b7862b', '#5a6b86'],
  dark: ['#5f9df2', '#5cc3d3', '#ac8be3', '#d9b25f', '#93a3bd'],
}
// What is bad: money that went back, what ended, what failed.
const POOR = { light: ['#c9455b', '#e39aa5'], dark: ['#ea7d8d', '#8e4a57'] }
const RED = { Chargebacks: 0, 'Charged back': 0, Ended: 0, Churn: 0, Churned: 0, Declined: 0, Refunds: 1, Refunded: 1 }
// The rest, which must not stand out although it may be large.
const FAINT = { light: '#ccd3dd', dark: '#434d5e' }

const isDark = () =>
  getComputedStyle(document.documentElement).colorScheme.includes('dark') &&
  (document.documentElement.dataset.theme === 'dark' ||
    (document.documentElement.dataset.theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches))

const REST = ['others', 'none', 'Not paid yet']

/** The color of each series, by its name. */
function colorsOf(names) {
  const theme = isDark() ? 'dark' : 'light'
  let next = 0
  return names.map((name) => {
    if (REST.includes(name)) return FAINT[theme]
    if (name in RED) return POOR[theme][RED[name]]
    return PALETTES[theme][next++ % PALETTES[theme].length]
  })
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Whether the days, the first to the last, are of more than a year: two of them may have the same day and month. */
const isLong = (days) =>
  days.length > 0 &&
  days.every((day) => /^\d{4}-\d{2}-\d{2}$/.test(day)) &&
  days.at(-1) >= `${Number(days[0].slice(0, 4)) + 1}${days[0].slice(4)}`

/** `2026-10-26` as `26 Oct`, or with its year as `26 Oct 2026`; `2026-10` as `Oct 2026`. */
function dateOf(text, withYear) {
  const [year, month, day] = (text ?? '').split('-')
  const name = MONTHS[Number(month) - 1]
  return name === undefined
    ? text
    : day === undefined
      ? `${name} ${year}`
      : `${Number(day)} ${name}${withYear ? ` ${year}` : ''}`
}

// A line through fewer points suggests values between them that do not exist.
const FEW_POINTS = 14

/** Reads a table: the labels of its rows, the marks of incomplete ones, a series for each further column, and their sum. */
function readTable(table) {
  const heads = [...table.tHead.rows[0].cells].slice(1)
  const rows = [...table.tBodies[0].rows]
  const columns = heads.map((head, n) => ({
    name: head.textContent.trim(),
    isSum: head.dataset.sum !== undefined,
    isEarlier: head.dataset.earlier !== undefined,
    values: rows.map((row) => {
      const value = row.cells[n + 1].dataset.value
      return value === undefined ? null : Number(value)
    }),
  }))
  const days = rows.map((row) => row.cells[0].dataset.value)
  const withYear = isLong(days)
  return {
    labels: days.map((day) => dateOf(day, withYear)),
    parts: rows.map((row) => row.cells[0].querySelector('.part')?.textContent),
    series: columns.filter(({ isSum }) => !isSum),
    sum: columns.find(({ isSum }) => isSum),
  }
}

const SHORTENED = { notation: 'compact', minimumFractionDigits: 0, maximumFractionDigits: 2 }
const SHORT = new Intl.NumberFormat('en-US', SHORTENED)
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const inMoney = (currency, more) => new Intl.NumberFormat('en-US', { style: 'currency', currency, ...more })

const inTooltip = ({ unit, currency }, value) =>
  value === null
    ? 'none'
    : unit === 'usd'
      ? inMoney(currency).format(value)
      : unit === 'percent'
        ? `${(value * 100).toFixed(1)}%`
        : WHOLE.format(value)
const onAxis = ({ unit, currency }, value) => {
  if (unit === 'percent') return `${WHOLE.format(value * 100)}%`
  const size = unit === 'usd' ? inMoney(currency, SHORTENED).format(Math.abs(value)) : SHORT.format(Math.abs(value))
  return `${value < 0 ? '−' : ''}${size}`
}

globalThis.charts = { isDark, colorsOf, readTable, inTooltip, onAxis, FEW_POINTS }
