BxsJ
×#<