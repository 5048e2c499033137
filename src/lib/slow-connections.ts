// Gives each address of a host more time to connect. Node tries the next one after 250 ms, which may lead nowhere, such as an IPv6 address
// on a machine without IPv6: then a connection fails only because the receiver is far away, a packet was lost or this process was busy.
// Imported for its effect, which holds for all connections of the process.
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

// Enough for a packet that is lost once, which is sent again after a second, and short enough for a second address within the two seconds
// that looking at one of several hosts of the database may take.
setDefaultAutoSelectFamilyAttemptTimeout(1200)
