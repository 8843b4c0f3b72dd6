// The type of an alert. Defines no thresholds.

/** An alert. */
export interface Alert {
  readonly alert: string
  /** `critical` pages the person on call, `warning` can wait until working hours. */
  readonly severity: 'critical' | 'warning'
  /** Prometheus's `for`: how long the expression must hold, for example `5m`. */
  readonly forSpan: string
  readonly expr: string
  readonly summary: string
}
