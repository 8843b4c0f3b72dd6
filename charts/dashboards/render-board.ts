// Makes Grafana's JSON of our dashboards, by Grafana's own library. Decides how they look, and
// nothing of what they show.
import * as common from '@grafana/grafana-foundation-sdk/common'
import {
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableHide,
  VariableRefresh,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus'
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as LinesBuilder } from '@grafana/grafana-foundation-sdk/timeseries'
import type { Board, Panel } from './panel.ts'
import { nameOf } from './series.ts'

const source = { type: 'prometheus', uid: '${datasource}' }
const PANEL_HEIGHT = 8
const PANEL_SPAN = 8
const PANELS_A_LINE = 3

/** A dashboard's JSON, with a line feed at its end. Any Grafana from 10 on takes it. */
export function renderBoard({ name, title, rows }: Board): string {
  const panels: object[] = []
  let top = 0
  for (const row of rows) {
    panels.push({ ...new RowBuilder(row.title).build(), gridPos: { x: 0, y: top, w: 24, h: 1 } })
    top++
    row.panels.forEach((panel, place) => {
      panels.push({ ...renderPanel(panel).build(), gridPos: placeOf(place, top) })
    })
    top += Math.ceil(row.panels.length / PANELS_A_LINE) * PANEL_HEIGHT
  }
  const board = {
    ...{ uid: `curtail-${name}`, title, tags: ['curtail'], editable: false },
    ...{ schemaVersion: 39, version: 1, refresh: '30s', timezone: 'browser' },
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables().map((one) => one.build()) },
    panels: panels.map((panel, place) => ({ id: place + 1, ...panel })),
  }
  return `${JSON.stringify(board, undefined, 2)}\n`
}

/** The place of a row's panel of this number, below the line `top`. */
function placeOf(place: number, top: number): object {
  const x = (place % PANELS_A_LINE) * PANEL_SPAN
  const y = top + Math.floor(place / PANELS_A_LINE) * PANEL_HEIGHT
  return { x, y, w: PANEL_SPAN, h: PANEL_HEIGHT }
}

const info = nameOf('buildInfo')

function variables(): { build(): unknown }[] {
  const pods = `label_values(${info}{namespace="$namespace"}, pod)`
  return [
    new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'),
    variable('namespace', 'Namespace', `label_values(${info}, namespace)`),
    variable('release', 'Release', pods).regex(
      '/^(.*?)-(?:create|redirect|ratelimit|controller)-.*$/',
    ),
  ]
}

function variable(name: string, label: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .query(query)
    .datasource(source)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .hide(VariableHide.DontHide)
}

function renderPanel(panel: Panel): StatBuilder | LinesBuilder {
  const builder = panel.isNumber === true ? new StatBuilder() : linesBuilder()
  builder
    .title(panel.title)
    .description(panel.description)
    .unit(panel.unit)
    .min(0)
    .datasource(source)
  panel.queries.forEach(({ expr, legend, hasExemplars }, place) => {
    const refId = String.fromCharCode(65 + place)
    const query = new DataqueryBuilder().refId(refId).expr(expr).legendFormat(legend)
    builder.withTarget(hasExemplars === true ? query.exemplar(true) : query)
  })
  return builder
}

function linesBuilder(): LinesBuilder {
  const legend = new common.VizLegendOptionsBuilder()
    .displayMode(common.LegendDisplayMode.List)
    .placement(common.LegendPlacement.Bottom)
    .showLegend(true)
  return new LinesBuilder().legend(legend).lineWidth(1).fillOpacity(10)
}
