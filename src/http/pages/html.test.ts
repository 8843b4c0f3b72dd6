// What `html` escapes, and what it omits.
import { expect, test } from '@jest/globals'
import { html } from './html.ts'

test('values are escaped in text and in quoted attributes', () => {
  const hostile = `<script>alert('1')</script>&"`
  expect(html`<p title="${hostile}">${hostile}</p>`.markup).toBe(
    '<p title="&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;">' +
      '&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;</p>',
  )
})

test('markup created by html is not escaped twice, alone or in a list', () => {
  const bold = html`<b>${'<'}</b>`
  expect(html`${bold}${[bold, bold]}`.markup).toBe('<b>&lt;</b><b>&lt;</b><b>&lt;</b>')
})

test('undefined and false render as nothing, 0 as 0', () => {
  expect(html`[${undefined}${false}${''}${0}]`.markup).toBe('[0]')
})
