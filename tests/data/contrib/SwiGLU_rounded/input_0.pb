
BgateJ<Ï2HhÆ
HÆÂ…½æEŠ¾$;AÈD~9!Â1EÃ²º–Æú¾VÅGÄ‚DèÃD´TH(HDğ9ÄÆ;H