// The result of one row of an import, as the admin API returns it and the command reads it.
import * as z from 'zod'

/**
 * `exists`: the row was imported before, or its code has a link with the same target, expiry and
 * state. `conflict`: its code belongs to a different link, which is unchanged. `failed`: the store
 * has not confirmed the row; a retry is safe.
 */
const importResults = ['created', 'exists', 'conflict', 'invalid', 'expired', 'failed'] as const

const resultShape = z.object({
  /** The code in the row. */
  short_code: z.string().nullable(),
  result: z.enum(importResults),
  /** The code of the link; differs from `short_code` if that is not allowed. */
  code: z.string().nullable(),
  /** Why the row was not imported, or why its code was replaced. */
  detail: z.string().nullable(),
})

/** The result of one row. */
export type ImportResult = z.output<typeof resultShape>

/** The response to a batch: one result per row, in order. */
export const importResponseShape = z.object({ results: z.array(resultShape) })

/** Bounds of a batch. */
export const BATCH_ROWS_MAX = 500
/** Size limit of the body of a batch. */
export const BATCH_BYTES_MAX = 2 * 1024 * 1024
