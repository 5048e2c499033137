// The parts of jstat that are used; the package has no types.
declare module 'jstat' {
  const library: {
    jStat: {
      normal: {
        cdf(x: number, mean: number, deviation: number): number
        inv(p: number, mean: number, deviation: number): number
      }
      studentt: { cdf(x: number, freedom: number): number; inv(p: number, freedom: number): number }
      chisquare: { cdf(x: number, freedom: number): number }
    }
  }
  export default library
}
