// Renders dashboards as Grafana JSON with Grafana's SDK. Defines the layout only, not the content.
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
const PANELS_PER_LINE = 3

/** The JSON of a dashboard with a trailing newline, for Grafana 10 or newer. */
export function renderBoard({ name, title, rows }: Board): string {
  const panels: object[] = []
  let top = 0
  for (const row of rows) {
    panels.push({ ...new RowBuilder(row.title).build(), gridPos: { x: 0, y: top, w: 24, h: 1 } })
    top++
    row.panels.forEach((panel, index) => {
      panels.push({ ...renderPanel(panel).build(), gridPos: gridPositionOf(index, top) })
    })
    top += Math.ceil(row.panels.length / PANELS_PER_LINE) * PANEL_HEIGHT
  }
  const board = {
    ...{ uid: `curtail-${name}`, title, tags: ['curtail'], editable: false },
    ...{ schemaVersion: 39, version: 1, refresh: '30s', timezone: 'browser' },
    time: { from: 'now-1h', to: 'now' },
    templating: { list: variables().map((one) => one.build()) },
    panels: panels.map((panel, index) => ({ id: index + 1, ...panel })),
  }
  return `${JSON.stringify(board, undefined, 2)}\n`
}

/** The grid position of the panel `index` of a row that starts at `top`. */
function gridPositionOf(index: number, top: number): object {
  const x = (index % PANELS_PER_LINE) * PANEL_SPAN
  const y = top + Math.floor(index / PANELS_PER_LINE) * PANEL_HEIGHT
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
  panel.queries.forEach(({ expr, legend, hasExemplars }, index) => {
    const refId = String.fromCharCode(65 + index)
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
