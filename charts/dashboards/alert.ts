// What an alert is. Decides no threshold.

/** An alert. */
export interface Alert {
  readonly alert: string
  /** `critical` wakes somebody, `warning` can wait until the morning. */
  readonly severity: 'critical' | 'warning'
  /** How long it must be so, as Prometheus writes it. */
  readonly forSpan: string
  readonly expr: string
  readonly summary: string
}
