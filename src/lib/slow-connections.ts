// Gives each address of a host time to connect. Node gives one up after 250 ms if there is another, and that one may lead nowhere, such as
// an IPv6 address on a machine without IPv6. The connection would then fail because a receiver is far away, a packet was lost or this
// process was busy. Import it for this effect: it holds for all connections of the process.
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

// Enough for a packet that is lost once, and short enough for a second address within ten seconds.
setDefaultAutoSelectFamilyAttemptTimeout(2500)
