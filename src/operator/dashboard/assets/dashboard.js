// Enhances pages: charts from tables, copy buttons, local times, selects that submit their form.
/* global Chart */

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

/** `2026-10-26` as `26 Oct`, `2026-10` as `Oct 2026`. */
function dateOf(text) {
  const [year, month, day] = (text ?? '').split('-')
  const name = MONTHS[Number(month) - 1]
  return name === undefined ? text : day === undefined ? `${name} ${year}` : `${Number(day)} ${name}`
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
  return {
    labels: rows.map((row) => dateOf(row.cells[0].dataset.value)),
    parts: rows.map((row) => row.cells[0].querySelector('.part')?.textContent),
    series: columns.filter(({ isSum }) => !isSum),
    sum: columns.find(({ isSum }) => isSum),
  }
}

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 2 })
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' })

const inTooltip = (unit, value) =>
  value === null
    ? 'none'
    : unit === 'usd'
      ? DOLLARS.format(value)
      : unit === 'percent'
        ? `${(value * 100).toFixed(1)}%`
        : WHOLE.format(value)
const onAxis = (unit, value) => {
  if (unit === 'percent') return `${WHOLE.format(value * 100)}%`
  return `${value < 0 ? '−' : ''}${unit === 'usd' ? '$' : ''}${SHORT.format(Math.abs(value))}`
}

/** Legend labels in the full color of each series: Chart.js takes that of the first bar, which may be faded. */
const generateLabels = (chart) =>
  Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label) => {
    const { color } = chart.data.datasets[label.datasetIndex]
    return { ...label, fillStyle: color, strokeStyle: color }
  })

function draw(figure) {
  const table = document.getElementById(figure.dataset.table)
  const canvas = figure.querySelector('canvas')
  if (!table || canvas.dataset.drawn) return
  canvas.dataset.drawn = 'yes'
  figure.querySelector('.canvas').hidden = false
  const { unit } = figure.dataset
  const lines = figure.dataset.lines.split('|').filter(Boolean)
  const { labels, parts, series, sum } = readTable(table)
  const isFew = figure.dataset.chart === 'line' && labels.length <= FEW_POINTS
  const kind = isFew ? 'bar' : figure.dataset.chart
  const colors = colorsOf(series.map(({ name }) => name))
  const grid = isDark() ? '#2b323e' : '#e1e5eb'
  const probe = getComputedStyle(figure.querySelector('summary')).color
  const incomplete = figure.querySelector('.incomplete')
  if (incomplete) incomplete.hidden = false
  const unitOf = (name) => (lines.includes(name) ? 'percent' : unit)
  const datasets = series.map(({ name, values, isEarlier }, n) => {
    const isLine = kind === 'line' || lines.includes(name) || isEarlier
    const color = isEarlier ? (isDark() ? '#7f8a9c' : '#8d97a8') : colors[n]
    return {
      type: isLine ? 'line' : 'bar',
      label: name,
      color,
      data: values,
      yAxisID: lines.includes(name) ? 'share' : 'y',
      backgroundColor: isLine ? `${color}1f` : parts.map((part) => (part ? `${color}80` : color)),
      borderColor: color,
      stack: isEarlier ? 'earlier' : undefined,
      ...(isEarlier && { borderDash: [2, 3] }),
      segment: isEarlier
        ? undefined
        : {
            borderDash: ({ p0DataIndex, p1DataIndex }) =>
              parts[p0DataIndex] || parts[p1DataIndex] ? [4, 4] : undefined,
          },
      borderWidth: isEarlier ? 1.25 : isLine ? 2 : 0,
      borderRadius: kind === 'stacked' ? 0 : 2,
      fill: kind === 'line' && n === 0 && !isEarlier && series.every((one, at) => at === 0 || one.isEarlier),
      pointRadius: isEarlier || labels.length > 40 ? 0 : 2,
      pointHitRadius: 12,
      maxBarThickness: 38,
      order: isEarlier ? 2 : isLine ? 0 : 1,
    }
  })
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12 }
  const axis = { border: { display: false }, beginAtZero: true }
  new Chart(canvas, {
    data: { labels, datasets },
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: 'index', intersect: false },
      plugins: {
        legend: {
          display: series.length > 1,
          position: 'top',
          align: 'end',
          labels: {
            color: probe,
            font,
            boxWidth: 10,
            boxHeight: 10,
            usePointStyle: true,
            pointStyle: 'rectRounded',
            generateLabels,
          },
        },
        tooltip: {
          callbacks: {
            title: ([{ dataIndex, label }]) => [label, parts[dataIndex]].filter(Boolean).join(', '),
            label: ({ dataset, raw }) => `${dataset.label}: ${inTooltip(unitOf(dataset.label), raw)}`,
            footer: ([{ dataIndex }]) => sum && `${sum.name}: ${inTooltip(unit, sum.values[dataIndex])}`,
          },
          itemSort: (a, b) => b.raw - a.raw,
        },
      },
      scales: {
        x: {
          stacked: kind === 'stacked',
          grid: { display: false },
          border: { color: grid },
          ticks: { color: probe, font, maxRotation: 0, autoSkipPadding: 18 },
        },
        y: {
          ...axis,
          stacked: kind === 'stacked',
          grid: { color: grid },
          ticks: {
            color: probe,
            font,
            maxTicksLimit: 6,
            // Counts have no fractions.
            ...(unit === 'number' && { precision: 0 }),
            callback: (value) => onAxis(unit, value),
          },
        },
        ...(lines.length > 0 && {
          share: {
            ...axis,
            position: 'right',
            grid: { display: false },
            ticks: { color: probe, font, maxTicksLimit: 6, callback: (value) => onAxis('percent', value) },
          },
        }),
      },
    },
  })
}

/** Draws all charts again, in the present colors. */
function redraw() {
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    const canvas = figure.querySelector('canvas')
    Chart.getChart(canvas)?.destroy()
    delete canvas.dataset.drawn
    draw(figure)
  }
}

function localTimes(root) {
  for (const one of root.querySelectorAll('time[datetime]')) {
    const at = new Date(one.getAttribute('datetime'))
    if (!Number.isNaN(at.getTime())) one.title = `${one.getAttribute('datetime')} · local time: ${at.toLocaleString()}`
  }
}

function enhance(root) {
  document.documentElement.classList.add('scripted')
  for (const figure of root.querySelectorAll('figure[data-chart]')) draw(figure)
  // Browsers have no clipboard for pages that come without TLS from another machine.
  if (navigator.clipboard) for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false
  localTimes(root)
}

document.addEventListener('click', async ({ target }) => {
  const button = target.closest?.('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy)
  button.classList.add('copied')
  setTimeout(() => button.classList.remove('copied'), 1200)
})

document.addEventListener('change', ({ target }) => {
  if (target.matches?.('[data-submit]')) target.form.requestSubmit()
})

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
    return
  const search = document.getElementById('search')
  if (!search) return
  event.preventDefault()
  search.focus()
})

// A boosted link replaces the body of the same document.
document.addEventListener('htmx:afterSettle', () => enhance(document))

// The browser loads errors as new documents, which htmx would not show, and pages with another layout: the sign-in page and guides.
document.addEventListener('htmx:beforeSwap', (event) => {
  const { boosted, serverResponse, xhr } = event.detail
  if (!boosted || (xhr.status < 400 && serverResponse.includes('<header class="side">'))) return
  event.preventDefault()
  location.assign(xhr.responseURL)
})

// If the server cannot be reached, a plain navigation lets the browser show why.
document.addEventListener('htmx:sendError', ({ detail: { boosted, pathInfo } }) => {
  if (boosted) location.assign(pathInfo.finalRequestPath)
})
// On paper the theme is light.
for (const media of ['print', '(prefers-color-scheme: dark)']) matchMedia(media).addEventListener('change', redraw)
enhance(document)
