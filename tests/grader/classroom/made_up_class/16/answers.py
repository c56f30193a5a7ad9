def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # ogni gradiente pesa quanto le sue immagini
    totale = sum(counts)
    lunghezza = len(gradients[0])
    somma = [0.0] * lunghezza
    for r in range(len(gradients)):
        if counts[r] == 0:
            continue  # senza immagini non conta
        for i in range(lunghezza):
            somma[i] = somma[i] + gradients[r][i] * counts[r]
    media = []
    for numero in somma:
        media.append(numero / totale)
    return media


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    quanti = len(chunks)
    # prima copio tutto, perche' tutti spediscono nello stesso momento
    nuovi = []
    for lavoratore in chunks:
        copia = []
        for pezzo in lavoratore:
            copia.append(list(pezzo))
        nuovi.append(copia)
    for r in range(quanti):
        vicino = (r + 1) % quanti
        c = (r - step) % quanti  # passo 0: il pezzo r, poi ogni volta quello prima
        spedito = chunks[r][c]
        for i in range(len(spedito)):
            nuovi[vicino][c][i] = nuovi[vicino][c][i] + spedito[i]
    return nuovi


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    spedisce = (rank - step) % size
    precedente = (rank - 1) % size
    riceve = (precedente - step) % size  # quello che spedisce il vicino prima di me
    somma = step < size - 1  # solo nella prima meta'
    return (spedisce, riceve, somma)


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    byte_spediti = []
    if scheme == "parameter server":
        for r in range(workers):
            if r == 0:
                byte_spediti.append((workers - 1) * gradient_bytes)  # il risultato a tutti gli altri
            else:
                byte_spediti.append(gradient_bytes)
    else:
        pezzo = gradient_bytes // workers
        passi = 2 * (workers - 1)
        for r in range(workers):
            byte_spediti.append(passi * pezzo)
    return byte_spediti
