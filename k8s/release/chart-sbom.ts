// Renders a chart's bill of materials in CycloneDX: the images that its default values name. Pure.
import { type Component, component, renderBom } from '../image/sbom.ts'

interface ImageValue {
  readonly repository: string
  readonly tag: string
  readonly digest: string
}

/** What identifies a chart. */
export interface ChartFacts {
  readonly name: string
  readonly version: string
  readonly appVersion: string
}

/** Renders the document from the chart's default values. */
export function renderChartSbom(chart: ChartFacts, values: unknown): string {
  const { name, version, appVersion } = chart
  const subject = component(`pkg:helm/${name}@${version}`, { type: 'application', name, version })
  const images = imagesIn(values).map((image) => renderImage(image, appVersion))
  const byRef = new Map(images.map((image) => [image['bom-ref'], image]))
  return renderBom(subject, [...byRef.values()])
}

/** Every value with a repository: the images of the chart's containers. */
function imagesIn(values: unknown): readonly ImageValue[] {
  if (typeof values !== 'object' || values === null) return []
  const { repository, tag, digest } = values as Readonly<Record<string, unknown>>
  const nested = Object.values(values).flatMap(imagesIn)
  if (typeof repository !== 'string' || repository === '') return nested
  const given = (value: unknown) => (typeof value === 'string' ? value : '')
  return [{ repository, tag: given(tag), digest: given(digest) }, ...nested]
}

function renderImage({ repository, tag, digest }: ImageValue, appVersion: string): Component {
  const name = repository.split('/').at(-1) ?? repository
  const version = digest === '' ? tag || appVersion : digest
  const place = `repository_url=${encodeURIComponent(repository)}`
  const query = digest === '' ? `${place}&tag=${encodeURIComponent(version)}` : place
  const at = digest === '' ? '' : `@${encodeURIComponent(digest)}`
  const purl = `pkg:oci/${name}${at}?${query}`
  return component(purl, { type: 'container', name: repository, version })
}
