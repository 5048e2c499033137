// What pages gain by scripts: pictures of their tables, copying, local times, choosers that need no button.
/* global Chart */

const PALETTES = {
  light: ['#2f6fd0', '#e08a3c', '#2f9e77', '#8a5fc7', '#c9455b', '#2a9db0', '#9aa3b2'],
  dark: ['#5f9df2', '#eaa45f', '#58c79d', '#ac8be3', '#ea7d8d', '#5cc3d3', '#7f8a9c'],
}

const isDark = () =>
  getComputedStyle(document.documentElement).colorScheme.includes('dark') &&
  (document.documentElement.dataset.theme === 'dark' ||
    (document.documentElement.dataset.theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches))

/** The numbers of a table: labels of its rows, and a series for each further column. */
function readTable(table) {
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent.trim())
  const rows = [...table.tBodies[0].rows]
  return {
    labels: rows.map((row) => row.cells[0].textContent.trim()),
    series: names.map((name, n) => ({
      name,
      values: rows.map((row) => {
        const value = row.cells[n + 1].dataset.value
        return value === undefined ? null : Number(value)
      }),
    })),
  }
}

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const DOLLARS = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' })

const written = (unit, value) =>
  value === null
    ? 'none'
    : unit === 'usd'
      ? DOLLARS.format(value)
      : unit === 'percent'
        ? `${(value * 100).toFixed(1)}%`
        : WHOLE.format(value)
const onAxis = (unit, value) =>
  unit === 'usd' ? `$${SHORT.format(value)}` : unit === 'percent' ? `${Math.round(value * 100)}%` : SHORT.format(value)

function draw(figure) {
  const table = document.getElementById(figure.dataset.table)
  const canvas = figure.querySelector('canvas')
  if (!table || canvas.dataset.drawn) return
  canvas.dataset.drawn = 'yes'
  figure.querySelector('.canvas').hidden = false
  const { chart: kind, unit } = figure.dataset
  const lines = figure.dataset.lines.split('|').filter(Boolean)
  const { labels, series } = readTable(table)
  const colors = PALETTES[isDark() ? 'dark' : 'light']
  const style = getComputedStyle(document.documentElement)
  const grid = style.getPropertyValue('--line')
  const probe = getComputedStyle(figure.querySelector('summary')).color
  const unitOf = (name) => (lines.includes(name) ? 'percent' : unit)
  const datasets = series.map(({ name, values }, n) => {
    const isLine = kind === 'line' || lines.includes(name)
    return {
      type: isLine ? 'line' : 'bar',
      label: name,
      data: values,
      yAxisID: lines.includes(name) ? 'share' : 'y',
      backgroundColor: isLine ? `${colors[n % colors.length]}1f` : colors[n % colors.length],
      borderColor: colors[n % colors.length],
      borderWidth: isLine ? 2 : 0,
      borderRadius: kind === 'stacked' ? 0 : 2,
      fill: kind === 'line' && series.length === 1,
      cubicInterpolationMode: 'monotone',
      pointRadius: labels.length > 40 ? 0 : 2,
      pointHitRadius: 12,
      maxBarThickness: 38,
      order: isLine ? 0 : 1,
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
          labels: { color: probe, font, boxWidth: 10, boxHeight: 10, usePointStyle: true, pointStyle: 'rectRounded' },
        },
        tooltip: {
          callbacks: { label: ({ dataset, raw }) => `${dataset.label}: ${written(unitOf(dataset.label), raw)}` },
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
          grid: { color: isDark() ? '#2b323e' : '#e8ebf0' },
          ticks: { color: probe, font, maxTicksLimit: 6, callback: (value) => onAxis(unit, value) },
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

function localTimes(root) {
  for (const one of root.querySelectorAll('time[datetime]')) {
    const at = new Date(one.getAttribute('datetime'))
    if (!Number.isNaN(at.getTime())) one.title = `${one.getAttribute('datetime')} · here: ${at.toLocaleString()}`
  }
}

function enhance(root) {
  document.documentElement.classList.add('scripted')
  for (const figure of root.querySelectorAll('figure[data-chart]')) draw(figure)
  for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false
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

// Boosted pages replace the body without loading the document again.
document.addEventListener('htmx:afterSettle', () => enhance(document))
enhance(document)
