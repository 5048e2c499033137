// Enhances pages: charts from tables, copy buttons, local times, selects that submit their form.
/* global Chart, charts, keptForm, places */

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
  const { unit, currency } = figure.dataset
  const lines = figure.dataset.lines.split('|').filter(Boolean)
  const { labels, parts, series, sum } = charts.readTable(table)
  const isFew = figure.dataset.chart === 'line' && labels.length <= charts.FEW_POINTS
  const kind = isFew ? 'bar' : figure.dataset.chart
  const colors = charts.colorsOf(series.map(({ name, isEarlier }) => (isEarlier ? 'others' : name)))
  const grid = charts.isDark() ? '#2b323e' : '#e1e5eb'
  const probe = getComputedStyle(figure.querySelector('summary')).color
  const incomplete = figure.querySelector('.incomplete')
  if (incomplete) incomplete.hidden = false
  const unitOf = (name) => (lines.includes(name) ? 'percent' : unit)
  const datasets = series.map(({ name, values, isEarlier }, n) => {
    const isLine = kind === 'line' || lines.includes(name) || isEarlier
    const color = isEarlier ? (charts.isDark() ? '#7f8a9c' : '#8d97a8') : colors[n]
    return {
      type: isLine ? 'line' : 'bar',
      label: name,
      color,
      data: values,
      yAxisID: lines.includes(name) ? 'share' : 'y',
      backgroundColor: isLine ? `${color}1f` : parts.map((part) => (part ? `${color}80` : color)),
      borderColor: color,
      stack: isEarlier ? 'earlier' : undefined,
      // Two earlier periods differ by their dashes.
      ...(isEarlier && { borderDash: series[n - 1]?.isEarlier ? [7, 4] : [2, 3] }),
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
      order: isEarlier ? -1 : isLine ? 0 : 1,
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
      // A bar leads where the first cell of its row leads.
      onClick: (_event, [found]) => found && table.tBodies[0].rows[found.index].cells[0].querySelector('a')?.click(),
      onHover: ({ native }, [found]) => {
        const isLink = found && table.tBodies[0].rows[found.index].cells[0].querySelector('a')
        if (native) native.target.classList.toggle('leads', Boolean(isLink))
      },
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
            label: ({ dataset, raw }) =>
              `${dataset.label}: ${charts.inTooltip({ unit: unitOf(dataset.label), currency }, raw)}`,
            footer: ([{ dataIndex }]) =>
              sum && `${sum.name}: ${charts.inTooltip({ unit, currency }, sum.values[dataIndex])}`,
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
            callback: (value) => charts.onAxis({ unit, currency }, value),
          },
        },
        ...(lines.length > 0 && {
          share: {
            ...axis,
            position: 'right',
            grid: { display: false },
            ticks: {
              color: probe,
              font,
              maxTicksLimit: 6,
              callback: (value) => charts.onAxis({ unit: 'percent' }, value),
            },
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
  places.showCurrent()
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

// A form that changes something is sent once, also by a double click: the second time might create another key, or replace the page that
// shows the first one by an error.
document.addEventListener('submit', (event) => {
  const form = event.target
  if (form.method !== 'post') return
  if (form.dataset.sent) event.preventDefault()
  form.dataset.sent = 'yes'
  setTimeout(() => delete form.dataset.sent, 5000)
})

document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
    return
  const search = document.getElementById('search')
  if (!search) return
  event.preventDefault()
  search.focus()
})

// Escape closes the form that the focus is in and that lies over the page. It keeps what was typed.
document.addEventListener('keydown', ({ key, target }) => {
  const form = key === 'Escape' && target.closest?.(':is(.action-form, .period details)[open]')
  if (!form) return
  form.open = false
  form.querySelector('summary').focus()
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
places.focusOutcome()
keptForm.fill()

// A reload does not say again what became of a form.
const address = new URL(location.href)
if (address.searchParams.has('done')) {
  address.searchParams.delete('done')
  history.replaceState(history.state, '', address)
}
