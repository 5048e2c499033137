// One writer of imported records at a time for each organization; a merge of profiles waits for its turn, too.

// Next to those of the migrations (7482), the writers (7483), the sweep (7484), and the demo and moves of shards (7485).
/** SQL: the advisory lock of the organization `$1`. */
export const IMPORT_TURN = '(7486, hashtext($1))'
