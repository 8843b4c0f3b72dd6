// The violations that axe-core finds in a page: the rules of WCAG 2.2 AA and its best practices.
import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** Each violation as `RULE: ELEMENTS`, of all rules or of `rules`; throws if a rule cannot run. */
export async function findAxeViolations(page: Page, rules?: string[]): Promise<string[]> {
  // The protocol of the browser evaluates it: the content security policy applies to the page only.
  await page.evaluate(axe.source)
  const options: axe.RunOptions = rules === undefined ? {} : { runOnly: rules }
  const run = `axe.run(document, ${JSON.stringify(options)})`
  const { violations, passes } = await page.evaluate<axe.AxeResults>(run)
  if (passes.length === 0) throw new Error('axe-core verified no rule on the page')
  return violations.map(({ id, nodes }) => {
    return `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`
  })
}
