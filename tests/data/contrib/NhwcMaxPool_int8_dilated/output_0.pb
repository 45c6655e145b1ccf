By0J ^.Bs{@RrQ^@VZ_\W`Ûø@zÇV%g{zv@ø
leX{zxdjý,7ksS_bEjEZ7Dcõ_W0BI{@DM"Q.BZb^W`ÛOxwwläpMWx;yyl pCW+BPV]pvá×|6Bk]xaxGJIBb7j{gjINueDsYjxw2æ{JpXM\x;yylJpHJ\