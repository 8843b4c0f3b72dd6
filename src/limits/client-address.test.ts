// The client key of a peer address.
import { expect, test } from '@jest/globals'
import { clientKeyOf } from './client-address.ts'

test.each([
  ['203.0.113.7', '203.0.113.7/32'],
  ['::ffff:203.0.113.7', '203.0.113.7/32'],
  ['::FFFF:10.0.0.1', '10.0.0.1/32'],
  ['::ffff:203.10.113.77', '203.10.113.77/32'],
  ['64:ff9b:0:1::ffff:10.0.0.1', '64:ff9b:0:1::/64'], // translated, not mapped
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8::/64'],
  ['2001:db8:0:2::', '2001:db8:0:2::/64'],
  ['2001:0db8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
  ['::1', '::/64'],
  ['1::2:3:4:5:6:7', '1:0:2:3::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['', ''],
])('%s counts as %s', (address, client) => {
  expect(clientKeyOf(address)).toBe(client)
})
