// The currencies of ISO 4217 and how many decimals each has: a table of our own, because a wrong digit is real money.

// List one (current currencies and funds) as its maintenance agency, SIX, publishes it, state of January 2026: with XCG
// (2025, in place of ANG) and XAD (2025), without BGN (the euro since January 2026). The package `currency-codes` stands
// at June 2024, keeps withdrawn codes, and gives gold and "no currency" 0 decimals; `Intl` differs for 16 codes.
// Codes whose minor unit the list gives as "N.A." (XAU, XDR, XTS, XXX, ...) are no money that can be paid with: left out.
const LIST_ONE: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
      COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS
      INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
      MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
      STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG`,
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

// List three (historic currencies): those that a payment of the last decades can be in. The minor units are those of the list's
// last edition with the code, and of the national law where the list gives none.
const LIST_THREE: Record<number, string> = {
  0: 'ADP BEF BYB BYR ESP GRD ITL LUF MGF PTE TPE TRL',
  2: `AFA ANG ATS AYM AZM BGL BGN CSD CUC CYP DEM EEK FIM FRF GHC GWP HRK IEP LTL LVL MRO MTL MZM NLG ROL RUR SDD SIT
      SKK SLL SRG STD TMM VEB VEF YUM ZMK ZWD ZWL ZWN ZWR`,
}

const tableOf = (list: Record<number, string>): ReadonlyMap<string, number> =>
  new Map(
    Object.entries(list).flatMap(([decimals, codes]) =>
      codes.split(/\s+/).map((code): [string, number] => [code, Number(decimals)]),
    ),
  )

/** The currencies in use: code → number of decimals of the minor unit. */
export const currencies = tableOf(LIST_ONE)

/** Currencies that were legal tender once: they occur in history, and are no longer in use. */
export const historicCurrencies = tableOf(LIST_THREE)

/** Both: every currency of a stored amount. */
export const allCurrencies: ReadonlyMap<string, number> = new Map([...historicCurrencies, ...currencies])
