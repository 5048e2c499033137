// Gives each address of a host time to connect. Node goes on to the next one after 250 ms, as far as to one that leads nowhere, such as an
// IPv6 address on a machine without IPv6: a receiver on the other side of the world, a packet that is sent again after a second or a
// process that was busy would be a failure. Import it for this effect: it holds for all connections of the process.
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

// Enough for a packet that is lost once, and short enough for a second address within ten seconds.
setDefaultAutoSelectFamilyAttemptTimeout(2500)
