// Renders the chart's monitoring files: the Prometheus rules and the Grafana dashboards.
// charts/render.ts writes them.
import { join } from 'node:path'
import { renderRules } from './alerts.ts'
import { controller } from './board-controller.ts'
import { dependencies, edgeBoard, limiter } from './boards-machinery.ts'
import { create, overview, redirect } from './boards-requests.ts'
import type { Board } from './panel.ts'
import { renderBoard } from './render-board.ts'

/** All dashboards. */
export const boards: readonly Board[] = [
  overview,
  redirect,
  create,
  limiter,
  edgeBoard,
  controller,
  dependencies,
]

/** The files: path and expected content. */
export function monitoringForChart(chart: string): [string, string][] {
  const dashboards = boards.map((board): [string, string] => {
    return [join(chart, 'dashboards', `${board.name}.json`), renderBoard(board)]
  })
  return [[join(chart, 'files', 'alerts.yaml'), renderRules()], ...dashboards]
}
